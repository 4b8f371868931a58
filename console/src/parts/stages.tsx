// Where the time of a call went.
const ORDER = ["lookup", "arguments", "intent", "adapter", "output", "record"];
const COLOURS = ["#7a869a", "#2f8f9d", "#8a6fb3", "#0c5f69", "#c08a2d", "#9a5b4f"];

const milliseconds = (ms: number) => `${ms < 10 ? ms.toFixed(2) : ms.toFixed(0)} ms`;

export function Stages({ stages, total }: { stages: Record<string, number>; total: number }) {
  const parts = ORDER.flatMap((name, index) => {
    const ms = stages[name];
    return ms === undefined ? [] : [{ name, ms, colour: COLOURS[index] ?? "" }];
  });
  const sum = parts.reduce((all, part) => all + part.ms, 0) || 1;
  let from = 0;
  return (
    <div className="stages">
      {parts.length > 0 && (
        <div className="track">
          <svg viewBox="0 0 100 1" preserveAspectRatio="none" role="img" aria-label={`${milliseconds(total)} in total`}>
            {parts.map(({ name, ms, colour }) => {
              const width = (ms / sum) * 100;
              const x = from;
              from += width;
              return <rect key={name} x={x} width={width} height="1" fill={colour} />;
            })}
          </svg>
        </div>
      )}
      <ul>
        <li>
          <strong>{milliseconds(total)}</strong>
        </li>
        {parts.map(({ name, ms, colour }) => (
          <li key={name}>
            <svg viewBox="0 0 1 1" aria-hidden="true">
              <rect width="1" height="1" fill={colour} />
            </svg>
            {name} {milliseconds(ms)}
          </li>
        ))}
      </ul>
    </div>
  );
}
