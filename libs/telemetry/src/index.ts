/** What our processes tell whoever runs them. */
export { createLogger, type Logger } from "./logger.ts";
