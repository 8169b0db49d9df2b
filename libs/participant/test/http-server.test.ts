/** Whatever becomes of a request, it is answered, and the process that serves it lives on. */
import { HoldpointError } from "@holdpoint/errors";
import { HttpServer } from "@holdpoint/participant";
import { afterEach, beforeEach, expect, test } from "vitest";

let http: HttpServer;
beforeEach(async () => {
  http = await HttpServer.listen("127.0.0.1", 0);
});
afterEach(() => http.stop());

/** What another copy of the errors, or plain JavaScript, may throw: it passes for an error of ours, and its code is none. */
function lookalike(code: unknown): object {
  const thrown = { code, message: "the key is hunter2" };
  Object.setPrototypeOf(thrown, HoldpointError.prototype);
  return thrown;
}

const internal = { error: { code: "internal_error", type: "server_error" } };

test.each([
  ["what is no error", undefined],
  ["an error of a code that there is not", lookalike("out_of_luck")],
  ["an error of a code that every object has", lookalike("constructor")],
  ["an error without a code", lookalike(undefined)],
  ["an error whose parts cannot be read", Object.defineProperty(lookalike(""), "code", { get: () => mistake() })],
])("%s is answered as 500, without its text", async (_, thrown) => {
  http.serve(() => Promise.reject(thrown));
  const response = await fetch(http.url);
  const text = await response.text();
  expect([response.status, JSON.parse(text)]).toMatchObject([500, internal]);
  expect(text).not.toContain("hunter2");
});

test.each([
  ["a body that is no JSON", { status: 200, body: { tokens: 1n } }],
  ["a status that there is not", { status: Number.NaN, body: {} }],
  ["a header that cannot be sent", { status: 200, headers: { "x-turn": "a\nb" }, body: {} }],
])("an answer with %s is answered as 500", async (_, answer) => {
  http.serve(async () => answer);
  const response = await fetch(http.url);
  expect([response.status, await response.json()]).toMatchObject([500, internal]);
});

function mistake(): never {
  throw new TypeError("a getter of its own");
}
