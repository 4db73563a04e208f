// A stand-in for MongoDB's shell, in Node: as much of `db.fenced.updateOne` as the printed guard asks for. No server of MongoDB
// can be had here, so this shows what the script decides by what it says, and not what MongoDB makes of it.
//
//   node stand-in.mjs GUARD STATE RESOURCE EPOCH TOKEN HOLDER SEQ VALUE
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { runInNewContext } from "node:vm";

const [guard, state, resource, epoch, token, holder, seq, value] = process.argv.slice(2);
const documents = existsSync(state) ? JSON.parse(readFileSync(state, "utf8")) : [];

// Any decimal number of up to 34 digits, as there; kept as its text.
function NumberDecimal(text) {
  if (!/^-?[0-9]{1,34}(\.[0-9]+)?$/.test(text)) throw new Error(`Failed to parse string as Decimal: ${text}`);
  return { $numberDecimal: text };
}
const scaled = ({ $numberDecimal: text }) => {
  const [whole, part = ""] = text.split(".");
  return BigInt(whole + part.padEnd(34, "0"));
};
const isDecimal = (value) => typeof value === "object" && "$numberDecimal" in value;
const at = (document, path) => path.split(".").reduce((value, name) => value?.[name], document);

function matches(document, filter) {
  return Object.entries(filter).every(([path, wanted]) => {
    if (path === "$or") return wanted.some((one) => matches(document, one));
    const found = at(document, path);
    if (found === undefined) return false;
    if (isDecimal(wanted)) return isDecimal(found) && scaled(found) === scaled(wanted);
    if (typeof wanted !== "object") return found === wanted;
    const [[operator, bound], ...more] = Object.entries(wanted);
    if (operator !== "$lt" || more.length > 0 || !isDecimal(bound)) throw new Error(`unknown: ${JSON.stringify(wanted)}`);
    return isDecimal(found) && scaled(found) < scaled(bound);
  });
}

const fenced = {
  updateOne(filter, { $set, $setOnInsert, ...more }, { upsert = false, writeConcern, ...options }) {
    if (Object.keys(more).length > 0 || Object.keys(options).length > 0) throw new Error("unknown");
    if (writeConcern.w !== "majority" || !writeConcern.j) throw new Error("not durable");
    const found = documents.find((document) => matches(document, filter));
    if (found) Object.assign(found, $set);
    else if (upsert) documents.push({ _id: filter._id, ...$set, ...$setOnInsert });
    return { matchedCount: found ? 1 : 0 };
  },
};

const variables = { resource, epoch, token, holder, seq, value };
runInNewContext(readFileSync(guard, "utf8"), { ...variables, db: { fenced }, NumberDecimal, print: console.log });
writeFileSync(state, JSON.stringify(documents));
