/** A simulated process that obeys its gate over the broker, as a real one does. */
import { decodeEvents, eventSchema } from "@holdpoint/eventsourcing";
import { type Connection, openLog } from "@holdpoint/jetstream";
import { ControlEvent, controlSubject } from "@holdpoint/schemas";
import { SimulatedProcess, type SimulatedProcessOptions } from "./simulated-process.ts";

const controlEvents = eventSchema(ControlEvent);

export interface JoinedProcess {
  readonly process: SimulatedProcess;
  stop(): Promise<void>;
}

/**
 * Starts the process, and lets it obey whatever the control subject asks from there on.
 *
 * @param seen called after each message of the control subject that it has folded
 */
export async function joinRun(
  connection: Connection,
  run: string,
  options: SimulatedProcessOptions,
  seen: () => void = () => {},
): Promise<JoinedProcess> {
  const log = openLog(connection, run);
  const process = new SimulatedProcess(run, log, options);
  await process.start();
  let queue = Promise.resolve();
  const obeyAll = async () => {
    while (await process.obey());
  };
  const tail = await log.tail({ from: process.startedAt + 1, subjects: [controlSubject(run)] }, (message) => {
    process.see(decodeEvents(message, controlEvents).events);
    seen();
    queue = queue.then(obeyAll, obeyAll);
  });
  return { process, stop: () => tail.stop() };
}
