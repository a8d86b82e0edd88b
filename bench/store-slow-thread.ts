/** The program of a store thread on the emulated slow disk. */
import { parentPort, workerData } from 'node:worker_threads'
import { serveStore } from '../src/store/engines/thread-server.ts'
import { slowCommit } from './store-slow-commit.ts'

if (parentPort !== null) serveStore(parentPort, { ...workerData, aroundCommit: slowCommit })
