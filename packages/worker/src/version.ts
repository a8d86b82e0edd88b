/** This package's version, as sent in pings, error reports and the User-Agent header. */
export const version = '0.1.0'
