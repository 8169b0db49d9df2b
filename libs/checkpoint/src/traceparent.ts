/** Somebody else's span, by its ids in hexadecimal digits. */
export interface RemoteSpan {
  readonly traceId: string;
  readonly spanId: string;
}

/** Version, trace, span, flags. A later version may say more after them; neither id may be all zeros, nor the version `ff`. */
const pattern =
  /^(?!ff|00.{54})[\da-f]{2}-(?!0{32})(?<traceId>[\da-f]{32})-(?!0{16})(?<spanId>[\da-f]{16})-[\da-f]{2}(?:-|$)/;

/** The span that a `traceparent` names (W3C Trace Context); undefined where it is malformed, or none. */
export function parseTraceparent(text: string | undefined): RemoteSpan | undefined {
  const { traceId, spanId } = pattern.exec(text ?? "")?.groups ?? {};
  return traceId === undefined || spanId === undefined ? undefined : { traceId, spanId };
}
