/** Whether `subject` matches one of `filters`, in NATS' manner: `*` is one token, a last `>` is one or more. Absent: all do. */
export function matchesAny(subject: string, filters: readonly string[] | undefined): boolean {
  return filters === undefined || filters.some((filter) => matches(subject.split("."), filter.split(".")));
}

function matches(tokens: readonly string[], filter: readonly string[]): boolean {
  const isOpen = filter.at(-1) === ">";
  const fixed = isOpen ? filter.slice(0, -1) : filter;
  const fits = isOpen ? tokens.length > fixed.length : tokens.length === fixed.length;
  return fits && fixed.every((part, at) => part === "*" || part === tokens[at]);
}
