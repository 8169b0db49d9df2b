/** The style of the report: light and dark by the reader's setting, nothing loaded from anywhere. */
export const style = `
:root {
  color-scheme: light dark;
  --page: #fbfaf7; --card: #ffffff; --ink: #1d2129; --soft: #626a78; --line: #e3e1da;
  --good: #1d7a4f; --good-soft: #e2f2e9; --bad: #b3261e; --bad-soft: #fbe4e2;
  --a0: #4c78b8; --a1: #2a9d8f; --a2: #c58b2a; --a3: #8a63b8; --abandoned: #b9bcc4; --parked: #ffffffb0;
  --hold: #e9c46a66; --cut: #a97f12; --restore: #2a9d8f44; --kill: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14161a; --card: #1b1e24; --ink: #e6e7ea; --soft: #9aa1ad; --line: #2d313a;
    --good: #6fd3a3; --good-soft: #17352a; --bad: #ff8f86; --bad-soft: #43211f;
    --a0: #6f9bd8; --a1: #4fc0b2; --a2: #dca64a; --a3: #ac8cd6; --abandoned: #4c515c; --parked: #14161aa0;
    --hold: #e9c46a38; --cut: #e9c46a; --restore: #4fc0b23a; --kill: #ff7a70;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 15px; font-weight: 600; margin: 0 0 12px; color: var(--soft); }
h2 { font-size: 18px; margin: 40px 0 12px; }
p { margin: 0 0 12px; max-width: 78ch; }
.soft { color: var(--soft); margin-top: 10px; }
.verdict { border-radius: 12px; padding: 24px 28px; }
.verdict strong { display: block; font-size: 34px; line-height: 1.15; margin-bottom: 6px; }
.verdict.good { background: var(--good-soft); } .verdict.good strong { color: var(--good); }
.verdict.bad { background: var(--bad-soft); } .verdict.bad strong { color: var(--bad); }
.cards { display: grid; grid-template-columns: repeat(4, 1fr); gap: 12px; margin-top: 16px; }
@media (max-width: 720px) { .cards { grid-template-columns: repeat(2, 1fr); } .checks { columns: 1; } }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.card b { display: block; font-size: 24px; font-variant-numeric: tabular-nums; }
.checks { list-style: none; margin: 0; padding: 0; columns: 2; column-gap: 32px; }
.checks > li { break-inside: avoid; padding: 3px 0 3px 26px; position: relative; }
.checks > li::before { position: absolute; left: 2px; font-weight: 700; content: "\\2713"; color: var(--good); }
.checks > li.bad::before { content: "\\2717"; color: var(--bad); }
.checks ul { margin: 2px 0 6px; padding-left: 18px; color: var(--bad); font-size: 13px; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { text-align: right; padding: 6px 12px; border-top: 1px solid var(--line); white-space: nowrap; }
th { border-top: 0; color: var(--soft); font-weight: 500; }
th.text, td.text { text-align: left; } td.code { font-family: ui-monospace, monospace; font-size: 13px; text-align: left; }
td.good { color: var(--good); } td.bad { color: var(--bad); }
.timeline { display: block; width: 100%; min-width: 760px; height: auto; font: 10px system-ui, sans-serif; }
.timeline text { fill: var(--soft); } .timeline text.label { text-anchor: end; font-size: 11px; fill: var(--ink); }
.timeline text.tick { text-anchor: middle; } .timeline line.tick { stroke: var(--line); }
.timeline line.rule { stroke: var(--line); stroke-width: .5; }
.timeline rect.attempt { rx: 2px; } .timeline .a0 { fill: var(--a0); } .timeline .a1 { fill: var(--a1); }
.timeline .a2 { fill: var(--a2); } .timeline .a3 { fill: var(--a3); } .timeline rect.abandoned { fill: var(--abandoned); rx: 2px; }
.timeline rect.parked { fill: var(--parked); } .timeline rect.hold { fill: var(--hold); }
.timeline path.cut { fill: var(--cut); } .timeline path.failed { fill: none; stroke: var(--cut); }
.timeline rect.restore { fill: var(--restore); }
.timeline .kill line { stroke: var(--kill); stroke-dasharray: 3 3; } .timeline .kill text { fill: var(--kill); text-anchor: middle; }
.timeline .everything line { stroke-dasharray: none; stroke-width: 1.6; } .timeline .everything text { font-weight: 700; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; padding: 0; margin: 10px 0 0; list-style: none; font-size: 13px; color: var(--soft); }
.legend i { display: inline-block; width: 16px; height: 10px; border-radius: 2px; margin-right: 6px; vertical-align: -1px; }
.figure { padding: 14px 14px 6px; }
`;
