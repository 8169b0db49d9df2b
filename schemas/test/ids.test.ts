/** The bounds of the protocol's ids: on them, and one past them. */
import { Attempt, CheckpointId, Cut, Digest, Role, roles, Token, WriterRole } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import type * as z from "zod";

const accepts = (schema: z.ZodType, value: unknown): boolean => schema.safeParse(value).success;

describe.each([
  { name: "a token", schema: Token },
  { name: "a checkpoint id", schema: CheckpointId },
])("$name", ({ schema }) => {
  test("has 1 to 128 characters", () => {
    expect(accepts(schema, "a")).toBe(true);
    expect(accepts(schema, "a".repeat(128))).toBe(true);
    expect(accepts(schema, "")).toBe(false);
    expect(accepts(schema, "a".repeat(129))).toBe(false);
  });

  test("holds letters and digits of ASCII, and nothing that a subject or a path gives a meaning", () => {
    expect(accepts(schema, "aZ09_-")).toBe(true);
    for (const sign of [" ", "*", ">", "/", "\\", "\n", "\0", "é", "٣", "$", ":"]) {
      expect(accepts(schema, `a${sign}b`)).toBe(false);
      expect(accepts(schema, `ab${sign}`)).toBe(false);
    }
    for (const other of [1, null, ["a"], undefined]) expect(accepts(schema, other)).toBe(false);
  });

  test("is refused with words that say what is expected", () => {
    expect(schema.safeParse("?").error?.issues[0]?.message).toContain("expected 1 to 128 of");
  });
});

test("a token may begin with any of its characters, and holds no dot", () => {
  for (const token of ["-", "_", "-a", "r-a1"]) expect(accepts(Token, token)).toBe(true);
  expect(accepts(Token, "a.b")).toBe(false);
});

test("a checkpoint id begins with a letter or a digit, and may hold dots after that", () => {
  for (const id of ["0", "C1", "step.100", "a..b", "a-_."]) expect(accepts(CheckpointId, id)).toBe(true);
  for (const id of [".a", "-a", "_a"]) expect(accepts(CheckpointId, id)).toBe(false);
});

test("an attempt is a whole number from 0", () => {
  for (const attempt of [0, 1, Number.MAX_SAFE_INTEGER]) expect(accepts(Attempt, attempt)).toBe(true);
  for (const attempt of [-1, 0.5, Number.MAX_SAFE_INTEGER + 1, "0", null])
    expect(accepts(Attempt, attempt)).toBe(false);
});

test("a digest is 64 lower-case hexadecimal digits", () => {
  expect(accepts(Digest, "0123456789abcdef".repeat(4))).toBe(true);
  for (const digest of ["a".repeat(63), "a".repeat(65), "A".repeat(64), "g".repeat(64)]) {
    expect(accepts(Digest, digest)).toBe(false);
  }
  expect(Digest.safeParse("").error?.issues[0]?.message).toBe("expected 64 lower-case hexadecimal digits");
});

test("the roles are prepared callers first, and the trainer is none of them, but writes a log", () => {
  expect(roles).toEqual(["environment", "model", "agent", "resources"]);
  expect(accepts(Role, "trainer")).toBe(false);
  expect(WriterRole.options).toEqual([...roles, "trainer"]);
});

test("a cut says a position of each stream, 0 for one that is empty", () => {
  expect(accepts(Cut, { HP_demo: 0, HP_other: 12 })).toBe(true);
  for (const cut of [{ HP_demo: -1 }, { HP_demo: 1.5 }, { HP_demo: "1" }, []]) expect(accepts(Cut, cut)).toBe(false);
});
