/** Loaded into processes of tests that get what others leave of the processors. */
import { constants, setPriority } from 'node:os'

setPriority(constants.priority.PRIORITY_LOW)
