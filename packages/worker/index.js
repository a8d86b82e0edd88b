import sdk from './index.cjs'

export const { downloadFiles, log, registerFitnessCheck, removeDownloads, start, uploadBytes, uploadFile } = sdk
export const { uploadImage, version } = sdk
