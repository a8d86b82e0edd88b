/** Lowers the priority of the processes of tests that load it: they get the processor time that others leave. */
import { constants, setPriority } from 'node:os'

setPriority(constants.priority.PRIORITY_LOW)
