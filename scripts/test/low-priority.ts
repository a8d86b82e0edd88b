/** Loaded into processes of tests that get the processor time that others leave. */
import { constants, setPriority } from 'node:os'

setPriority(constants.priority.PRIORITY_LOW)
