// JSON whose integers stay exact: a number where JavaScript's is exact, a BigInt beyond, as the module answers.

const STRING_OR_INTEGER = /"(?:[^"\\]|\\.)*"|-?\d+(?![\d.eE])/g;
const MARK = "\u0001integer:";

export function parseLossless(text) {
  const marked = text.replace(STRING_OR_INTEGER, (token) =>
    token.startsWith('"') || Number.isSafeInteger(Number(token)) ? token : `"\\u0001integer:${token}"`,
  );
  return JSON.parse(marked, (_key, value) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}
