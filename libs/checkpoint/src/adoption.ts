/** Who goes on with what a worker held that is not there any more: another worker of its instance. */
import type { Adoption, Holding } from "@holdpoint/schemas";
import { expectedOf, processKey } from "./processes.ts";
import type { CoordinatorState, Process, Restorable } from "./state.ts";

/** The holdings of `source` whose worker is not expected. */
function orphans({ processes }: CoordinatorState, { holdings }: Restorable): readonly Holding[] {
  return holdings.filter((held) => held.sessions > 0 && processes.get(processKey(held))?.expected !== true);
}

function siblingsOf(state: CoordinatorState, { role, instance }: Holding): readonly Process[] {
  return expectedOf(state, [role]).filter((process) => process.instance === instance);
}

/** What nobody can go on with: its instance has no worker at all. */
export function lostIn(state: CoordinatorState, source: Restorable): readonly Holding[] {
  return orphans(state, source).filter((held) => siblingsOf(state, held).length === 0);
}

/** One adoption for each holding that lost its worker, spread over the workers that are there. */
export function adoptionsOf(state: CoordinatorState, source: Restorable): Adoption[] {
  return orphans(state, source).flatMap((held, at) => {
    const siblings = siblingsOf(state, held);
    const heir = siblings[at % siblings.length];
    const { role, instance, worker } = held;
    return heir === undefined ? [] : [{ role, instance, worker: heir.worker, of: worker }];
  });
}
