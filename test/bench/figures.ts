/** Figures of a measurement: sorted samples and their quantiles. */
export interface Figures {
  readonly p50: number;
  readonly p99: number;
  readonly min: number;
  readonly max: number;
}

export function figuresOf(samples: readonly number[]): Figures {
  const sorted = samples.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99), min: at(0), max: at(1) };
}

export function median(samples: readonly number[]): number {
  return figuresOf(samples).p50;
}

/** `value` with three significant digits, and thousands apart. */
export function show(value: number): string {
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en", { maximumFractionDigits: Math.min(digits, 3) });
}

/** Rows as a Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return lines.join("\n");
}
