export { untilAborted } from "../until-aborted.ts";
