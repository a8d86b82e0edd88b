import { sizeText } from './model-problem.ts'

/** Progress of a download, in bytes. */
export interface DownloadProgress {
  readonly receivedBytes: number
  /** Null until the list of files exists. */
  readonly totalBytes: number | null
}

/** Progress of a download, for people. */
export function progressText({ receivedBytes, totalBytes }: DownloadProgress): string {
  if (totalBytes === null) return 'the list of its files is requested'
  return `${sizeText(receivedBytes)} of ${sizeText(totalBytes)} (${downloadPercent({ receivedBytes, totalBytes })} %)`
}

/** Progress in percent, rounded down; null until the size is known. */
export function downloadPercent({ receivedBytes, totalBytes }: DownloadProgress): number | null {
  if (totalBytes === null) return null
  return totalBytes === 0 ? 100 : Math.floor((receivedBytes / totalBytes) * 100)
}

/** Sum of several downloads; null for an empty list. */
export function summedProgress(all: readonly DownloadProgress[]): DownloadProgress | null {
  if (all.length === 0) return null
  const isKnown = all.every(({ totalBytes }) => totalBytes !== null)
  const sum = (of: (one: DownloadProgress) => number) => all.reduce((total, one) => total + of(one), 0)
  return {
    receivedBytes: sum(({ receivedBytes }) => receivedBytes),
    totalBytes: isKnown ? sum(({ totalBytes }) => totalBytes ?? 0) : null,
  }
}
