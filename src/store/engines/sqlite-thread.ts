/** The program of the store's thread. */
import { parentPort, workerData } from 'node:worker_threads'
import { serveStore } from './thread-server.ts'

if (parentPort !== null) serveStore(parentPort, workerData)
