// How a page was made: version, command and other facts, and the parts that were left out.
export function MadeBy({ command, version, facts, leftOut }: { command: string; version: string; facts: [string, string][]; leftOut: string[] }) {
  const lines: [string, string][] = [["command", command], ["version", `xccl-synth ${version}`], ...facts];
  return (
    <section class="card" aria-labelledby="made-title">
      <div class="card-head"><h2 id="made-title">How this was made</h2></div>
      <div class="inside">
        <dl class="facts">{lines.map(([name, value]) => <div key={name + value}><dt>{name}</dt><dd>{name === "command" ? <code>{value}</code> : value}</dd></div>)}</dl>
        {leftOut.length > 0 && (
          <details>
            <summary>Left out ({leftOut.length})</summary>
            <ul>{leftOut.map((line) => <li key={line}>{line}</li>)}</ul>
          </details>
        )}
      </div>
    </section>
  );
}
