// Where labels go below a bar: each hangs on a line from its mark, none covers another or another's line.

export interface Label {
  x: number;
  words: string;
  cls: string;
}

export interface Placed extends Label {
  row: number;
  /** Where the words begin and end. */
  left: number;
  right: number;
}

const GAP = 5;

/** The fewest rows that hold all labels from 0 to `width`. There are at most five, so every order is tried. */
export function place(labels: Label[], width: number, measure: (words: string) => number): Placed[] {
  let best: Placed[] | undefined;
  for (const order of permutations(labels)) {
    const placed: Placed[] = [];
    for (const label of order) {
      const free = candidates(label, labels.length, width, measure).find((c) => placed.every((p) => apart(c, p)));
      if (!free) break;
      placed.push(free);
    }
    if (placed.length === labels.length && (!best || height(placed) < height(best))) best = placed;
  }
  return best ?? labels.map((label, row) => inside(label, row, width, measure));
}

export function height(placed: Placed[]): number {
  return Math.max(0, ...placed.map(({ row }) => row + 1));
}

/** The words to the right or to the left of the line, in each row, where there is room for them. */
function candidates(label: Label, rows: number, width: number, measure: (words: string) => number): Placed[] {
  const { x, words } = label;
  const length = measure(words);
  const sides = [x + GAP, x - GAP - length].filter((left) => left >= 0 && left + length <= width);
  return Array.from({ length: rows }, (_, row) => sides.map((left) => ({ ...label, row, left, right: left + length }))).flat();
}

/** A row of its own, pushed inside: for words too long for either side. */
function inside(label: Label, row: number, width: number, measure: (words: string) => number): Placed {
  const length = measure(label.words);
  const left = Math.max(0, Math.min(label.x + GAP, width - length));
  return { ...label, row, left, right: left + length };
}

/** Whether neither's words touch the other's words or line. A line reaches from the bar down to its own row. */
function apart(a: Placed, b: Placed): boolean {
  if (a.row === b.row) return a.right + 2 * GAP <= b.left || b.right + 2 * GAP <= a.left;
  const [deep, shallow] = a.row > b.row ? [a, b] : [b, a];
  return deep.x < shallow.left - 1 || deep.x > shallow.right + 1;
}

function permutations<T>(items: T[]): T[][] {
  if (items.length < 2) return [items];
  return items.flatMap((item, i) => permutations(items.filter((_, j) => j !== i)).map((rest) => [item, ...rest]));
}
