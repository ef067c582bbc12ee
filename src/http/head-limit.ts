// How long the line and the headers of a request may be together, for both servers.
//
// uWebSockets.js reads its limit from the environment of the process when it loads. A thread has a copy of that environment, so the main
// thread has to set it before it starts one.

/** Bytes of a request's line and headers together. */
export const headBytesMax = 16 * 1024

/** Has effect in the main thread only, before uWebSockets.js is loaded anywhere. Its own default is 4 KB. */
export function setHeadLimit(): void {
  process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(headBytesMax)
}
