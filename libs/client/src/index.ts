/** For controllers: a trainer, a command line, a collector. */
export { type CommandOptions, Controller, type ControllerOptions, resultOf } from "./controller.ts";
