import { errorCodes, HoldpointError } from "@holdpoint/errors";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";

test("the codes are those of the protocol, and each says what becomes of the message that met it", () => {
  const dispositions = errorCodes.map((code) => [code, new HoldpointError(code, "").disposition]);
  expect(dispositions).toEqual([
    ["invalid_request", "terminate"],
    ["unauthorized", "terminate"],
    ["not_found", "ack"],
    ["session_conflict", "ack"],
    ["unavailable", "retry"],
    ["stale_checkpoint", "ack"],
    ["checkpoint_conflict", "ack"],
    ["invalid_phase", "ack"],
    ["deadline_exceeded", "ack"],
    ["stale_attempt", "ack"],
    ["admission_closed", "retry"],
    ["restart_in_scope", "ack"],
    ["rollout_id_required", "terminate"],
    ["invalid_checkpoint_state", "ack"],
  ]);
});

describe("an error", () => {
  test("carries its code, its words, its details and what caused it", () => {
    const cause = new Error("refused");
    const error = new HoldpointError("unavailable", "the broker is away", { details: { tries: 3 }, cause });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: "HoldpointError", code: "unavailable", message: "the broker is away" });
    expect(error.details).toEqual({ tries: 3 });
    expect(error.cause).toBe(cause);
  });

  test("without details and cause has no details, and does not speak of a cause", () => {
    const error = new HoldpointError("not_found", "no such rollout");
    expect(error.details).toEqual({});
    expect("cause" in error).toBe(false);
    expect(inspect(error)).not.toContain("cause");
  });

  test("is known by its class, and by its code where one is asked for", () => {
    const error: unknown = new HoldpointError("not_found", "no such rollout");
    expect(HoldpointError.is(error)).toBe(true);
    expect(HoldpointError.is(error, "not_found")).toBe(true);
    expect(HoldpointError.is(error, "unavailable")).toBe(false);
  });

  test("of another class is none, whatever it looks like", () => {
    const lookalike = Object.assign(new Error("x"), { name: "HoldpointError", code: "not_found" });
    for (const other of [lookalike, undefined, null, "not_found", {}]) {
      expect(HoldpointError.is(other)).toBe(false);
      expect(HoldpointError.is(other, "not_found")).toBe(false);
    }
  });
});

test("an error of no code of the protocol cannot be made, also where no compiler looks", () => {
  for (const code of ["nosuchcode", "toString", undefined]) {
    expect(() => void Reflect.construct(HoldpointError, [code, "x"])).toThrow(
      /no error code .*; there are invalid_request,/,
    );
  }
});
