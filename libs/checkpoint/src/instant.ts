const pattern = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?Z$/;

/**
 * Epoch milliseconds of an ISO 8601 instant in UTC, cut off to whole ones; `NaN` where it is none. This package knows no
 * platform's clock.
 */
export function instantMs(iso: string): number {
  const [, year, month, day, hours, minutes, seconds, fraction = ""] = pattern.exec(iso) ?? [];
  const days = daysSinceEpoch(Number(year), Number(month), Number(day));
  const wholeSeconds = ((days * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
  return wholeSeconds * 1000 + Number(fraction.padEnd(3, "0").slice(0, 3));
}

/** In the proleptic Gregorian calendar; the year is counted from March, so that the leap day is its last. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const years = month > 2 ? year : year - 1;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  const leapDays = Math.floor(years / 4) - Math.floor(years / 100) + Math.floor(years / 400);
  return years * 365 + leapDays + dayOfYear - daysToEpoch;
}

/** From the first of March of the year 0 to the first of January 1970. */
const daysToEpoch = 719_468;
