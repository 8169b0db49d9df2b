/**
 * Does `work` for every item, at most `lanes` (positive) at once, in their order.
 *
 * @returns the results in the order of the items
 * @throws the first error, once what had begun has ended; nothing new is begun after it
 */
export async function mapBounded<Item, Result>(
  items: readonly Item[],
  lanes: number,
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results = new Map<number, Result>();
  const failures: unknown[] = [];
  const queue = items.entries();
  const lane = async () => {
    for (const [index, item] of queue) {
      try {
        results.set(index, await work(item));
      } catch (error) {
        failures.push(error);
      }
      if (failures.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(lanes, items.length) }, lane));
  if (failures.length > 0) throw failures[0];
  return [...results].toSorted(([one], [other]) => one - other).map(([, result]) => result);
}
