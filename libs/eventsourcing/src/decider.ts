/**
 * The decisions of one state, as pure functions: no clock, no randomness, no I/O.
 *
 * The shape and its words are J. Chassaing's (https://thinkbeforecoding.com/post/2021/12/17/functional-event-sourcing-decider).
 */
export interface Decider<Command, Event, State> {
  readonly initialState: State;

  /**
   * The events that `command` causes in `state`; none where it has been obeyed before.
   *
   * @throws HoldpointError where `state` does not allow it
   */
  readonly decide: (command: Command, state: State) => readonly Event[];

  /** The state after `event`. Total: history has happened, so it never throws. */
  readonly evolve: (state: State, event: Event) => State;
}

/** The state after `events`, oldest first. */
export function fold<Event, State>(
  { evolve, initialState }: Pick<Decider<never, Event, State>, "evolve" | "initialState">,
  events: Iterable<Event>,
): State {
  let state = initialState;
  for (const event of events) state = evolve(state, event);
  return state;
}
