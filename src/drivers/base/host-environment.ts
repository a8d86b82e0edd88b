/** The variables that the server inherited, and the one by which a worker's processes are found. */

/** Variables of the host, as the entry point of the server received them. */
export type HostEnvironment = Readonly<Record<string, string | undefined>>

/** Holds a worker's id in its environment and in that of everything that it starts. */
export const WORKER_VARIABLE = 'RUNPOD_POD_ID'
