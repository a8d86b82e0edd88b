/** The refusals of the S3 door, with the names that clients of S3 know, their status and their sentence. */
export const FILE_ERRORS = {
  AccessDenied: [403, 'access is denied'],
  AccessControlListNotSupported: [400, 'files have no access lists; the rights are those of the key'],
  AuthorizationHeaderMalformed: [400, 'the Authorization header is not one of AWS Signature Version 4'],
  AuthorizationQueryParametersError: [400, 'the query is not one of a presigned URL with AWS Signature Version 4'],
  BadDigest: [400, 'the checksum that the request names is not that of its body'],
  BucketAlreadyOwnedByYou: [409, 'the network volume exists, and belongs to the account'],
  EntityTooLarge: [400, 'the body is larger than a file or a part may be'],
  EntityTooSmall: [400, 'a part that is not the last one has less than 5 MB'],
  IncompleteBody: [400, 'the body is shorter or longer than the request announced'],
  InsufficientStorage: [507, 'the disk of the network volumes is full'],
  InternalError: [500, 'an internal error occurred'],
  InvalidAccessKeyId: [403, 'the access key id is unknown, disabled or expired'],
  InvalidArgument: [400, 'an argument of the request is not valid'],
  InvalidDigest: [400, 'a checksum of the request does not have the form of one'],
  InvalidPart: [400, 'a part was not uploaded, or its entity tag is another one'],
  InvalidPartOrder: [400, 'the parts are not in the order of their numbers'],
  InvalidRange: [416, 'the range begins after the end of the file'],
  InvalidRequest: [400, 'the request is not valid'],
  KeyTooLongError: [400, 'the key is too long'],
  MalformedXML: [400, 'the body is not the XML that this operation takes'],
  MethodNotAllowed: [405, 'this method is not allowed here'],
  MissingContentLength: [411, 'the request needs the length of its body'],
  NoSuchBucket: [404, 'the account has no network volume with this id'],
  NoSuchKey: [404, 'there is no file with this key'],
  NoSuchUpload: [404, 'there is no such multipart upload; it was completed, aborted, or is older than a day'],
  NotImplemented: [501, 'this operation of S3 is not implemented'],
  NotModified: [304, 'the file is the one that the client has'],
  PreconditionFailed: [412, 'a condition of the request does not hold'],
  QuotaExceeded: [403, 'the network volume would be larger than its size'],
  RequestTimeTooSkewed: [403, 'the time of the request differs from that of the server by more than 15 minutes'],
  RequestTimeout: [400, 'the body did not arrive in time'],
  ServiceUnavailable: [503, 'the server cannot do this now'],
  SignatureDoesNotMatch: [403, 'the signature is not that of the secret access key'],
  SlowDown: [503, 'too many requests at once'],
  XAmzContentSHA256Mismatch: [400, 'the SHA-256 that the request names is not that of its body'],
} as const satisfies Record<string, readonly [status: number, message: string]>

/** A key of {@link FILE_ERRORS}. */
export type FileErrorCode = keyof typeof FILE_ERRORS

/** A refusal of the S3 door. Its message is a sentence for the sender of the request. */
export class FileError extends Error {
  readonly code: FileErrorCode

  /** @param message what is wrong; the sentence of the code by default */
  constructor(code: FileErrorCode, message: string = FILE_ERRORS[code][1], options?: ErrorOptions) {
    super(message, options)
    this.name = 'FileError'
    this.code = code
  }

  /** HTTP status of the code. */
  get status(): number {
    return FILE_ERRORS[this.code][0]
  }
}
