import sdk from './index.cjs'

export const { downloadFile, downloadFiles, log, registerFitnessCheck, removeDownloads, start } = sdk
export const { uploadBytes, uploadFile, uploadImage, version } = sdk
