/**
 * The places of a JavaScript source where one operator or literal can be flipped, and the flip.
 *
 * 1. A flip keeps the number of lines, and every other character.
 * 2. Flips come in pairs: what a flip writes is itself a site, and flipping that gives the source back.
 * 3. Comments, strings, templates' texts and regular expressions hold no sites.
 */
import { type AnyNode, type AssignmentExpression, type BinaryExpression, type LogicalExpression, parse } from "acorn";

/** What stands at a site, and what a flip writes there. A closed set: weights of a policy are kept by its order. */
export const siteKinds = [
  "|| to &&",
  "&& to ||",
  "!== to ===",
  "=== to !==",
  "! to !!",
  "!! to !",
  "false to true",
  "true to false",
  "- to +",
  "+ to -",
  "0 to 1",
  "1 to 0",
  ">= to <",
  "< to >=",
  "<= to >",
  "> to <=",
  "-- to ++",
  "++ to --",
  "-= to +=",
  "+= to -=",
  "!= to ==",
  "== to !=",
  "/ to *",
  "* to /",
] as const;
export type SiteKind = (typeof siteKinds)[number];

export interface Site {
  /** Of the first character, in UTF-16 units from the start of the source. */
  readonly position: number;
  /** From 1; lines end at a line feed. */
  readonly line: number;
  readonly kind: SiteKind;
}

/** What a flip of this kind takes away, and what it writes instead. */
export function flipOf(kind: SiteKind): { readonly found: string; readonly replacement: string } {
  const [found = "", replacement = ""] = kind.split(" to ");
  return { found, replacement };
}

const kindOf: ReadonlyMap<string, SiteKind> = new Map(siteKinds.map((kind) => [flipOf(kind).found, kind]));

/**
 * Every site of `source`, by position.
 *
 * @returns none where `source` cannot be parsed as a script
 */
export function sites(source: string): readonly Site[] {
  const program = tryParse(source);
  if (program === undefined) return [];
  const found: Omit<Site, "line">[] = [];
  visit(program, (node) => {
    const token = tokenOf(node, source);
    const kind = token === undefined ? undefined : kindOf.get(token.text);
    if (token !== undefined && kind !== undefined) found.push({ position: token.position, kind });
  });
  const sorted = found.toSorted((one, other) => one.position - other.position);
  let line = 1;
  let from = 0;
  return sorted.map(({ position, kind }) => {
    line += source.slice(from, position).split("\n").length - 1;
    from = position;
    return { position, line, kind };
  });
}

/** `source` with this site flipped. `site` must be one of `sites(source)`. */
export function flip(source: string, site: Pick<Site, "position" | "kind">): string {
  const { found, replacement } = flipOf(site.kind);
  return source.slice(0, site.position) + replacement + source.slice(site.position + found.length);
}

function tryParse(source: string): AnyNode | undefined {
  try {
    return parse(source, { ecmaVersion: "latest", allowReturnOutsideFunction: true, allowHashBang: true });
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Calls `meet` for every node below `value`. */
function visit(value: unknown, meet: (node: AnyNode) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) visit(item, meet);
  } else if (isNode(value)) {
    meet(value);
    for (const child of Object.values(value)) visit(child, meet);
  }
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

interface Token {
  readonly text: string;
  readonly position: number;
}

/** The operator or literal of `node`, where it can be replaced without running into what stands beside it. */
function tokenOf(node: AnyNode, source: string): Token | undefined {
  if (node.type === "Literal") return { text: source.slice(node.start, node.end), position: node.start };
  if (node.type === "UnaryExpression") return negation(node.start, source);
  if (node.type === "UpdateExpression") {
    return { text: node.operator, position: node.prefix ? node.start : node.end - node.operator.length };
  }
  if (isInfix(node)) return infix(node.operator, afterOperand(node.left.end, source), source);
  return undefined;
}

function isInfix(node: AnyNode): node is BinaryExpression | LogicalExpression | AssignmentExpression {
  return ["BinaryExpression", "LogicalExpression", "AssignmentExpression"].includes(node.type);
}

/** Where the operator begins whose left operand ends at `end`: past closing parentheses, white space and comments. */
function afterOperand(end: number, source: string): number {
  const between = /(?:[\s)]|\/\*[^]*?\*\/|\/\/.*)*/y;
  between.lastIndex = end;
  return end + (between.exec(source)?.[0].length ?? 0);
}

/** No token beside another operator, where a flip could make one operator of two, or a comment: `a+-b`, `a*\/re/`. */
function infix(text: string, position: number, source: string): Token | undefined {
  const neighbours = source.charAt(position - 1) + source.charAt(position + text.length);
  return /[-+*/!<=>&|]/.test(neighbours) ? undefined : { text, position };
}

/** The whole run of `!` that starts at `position`: a negation inside another is no token of its own. */
function negation(position: number, source: string): Token | undefined {
  if (source.charAt(position - 1) === "!") return undefined;
  return { text: /^!*/.exec(source.slice(position))?.[0] ?? "", position };
}
