/** Events to functions, by type: a fold as a table, so that each kind of event can be read, and tested, alone. */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { ControlEvent } from "@holdpoint/schemas";

type DataByType = { [E in ControlEvent as E["type"]]: E["data"] };
export type ControlEventType = keyof DataByType;

/** The data of the control event of type `T`. */
export type DataOf<T extends ControlEventType> = DataByType[T];

/** Where an event rests: its sequence, subject, time and writer. */
export type Place = Omit<Recorded<unknown>, "event">;

/** For each type of control event that concerns `State`, the state after it. */
export type Handlers<State> = {
  readonly [T in ControlEventType]?: (state: State, data: DataByType[T], place: Place) => State;
};

type Typed<T extends ControlEventType> = { [K in T]: { readonly type: K; readonly data: DataByType[K] } }[T];

/** The state after `event`, by the handler of its type; where there is none, the state as it was. */
export function applied<State, T extends ControlEventType>(
  handlers: Handlers<State>,
  state: State,
  event: Typed<T>,
  place: Place,
): State {
  const handler: Handlers<State>[T] = handlers[event.type];
  return handler === undefined ? state : handler(state, event.data, place);
}
