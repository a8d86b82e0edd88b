/** Small charts without axes. */

/** A line of numbers without axes; the label describes it. */
export function Spark({
  points,
  label,
  width = 96,
  height = 24,
}: {
  readonly points: readonly number[]
  readonly label: string
  readonly width?: number
  readonly height?: number
}) {
  const most = Math.max(1, ...points)
  const step = width / Math.max(1, points.length - 1)
  const line = points.map(
    (value, at) => `${(at * step).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`,
  )
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <polygon points={`0,${height} ${line.join(' ')} ${width},${height}`} />
      <polyline points={line.join(' ')} />
    </svg>
  )
}

/** The used share of a whole, as a bar. */
export function Meter({ share, label }: { readonly share: number; readonly label: string }) {
  const width = Math.min(Math.max(share, 0), 1) * 100
  return (
    <span class={`meter${share > 0.9 ? ' full' : ''}`} role="img" aria-label={`${label}: ${Math.round(share * 100)}%`}>
      <span style={{ width: `${width}%` }} />
    </span>
  )
}
