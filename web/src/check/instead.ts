// Systems without a lease of their own that could be checked: what to do with them instead.

import type { Preset } from "fencegate";

export const INSTEAD: Partial<Record<Preset["system"], string>> = {
  redis:
    "Where a double run breaks something, take the lease from a service whose majority agrees on a counter (etcd, ZooKeeper, Consul) and let the resource refuse every token below the highest it has seen. Where it only wastes work, keep this lock knowingly: size its TTL in the first view, and release it by its value alone.",
  "postgres-advisory":
    "Where the work is in the same database, do it in the transaction that holds a row lock (SELECT … FOR UPDATE): lock and writes then end together. Where it is elsewhere, keep a counter in a row, raise it with each turn (UPDATE … RETURNING), hand it over as the token, and let the resource refuse every lower one.",
  s3:
    "Let the write itself be conditional (If-Match with the ETag that was read): a late one fails, which is a fence for that one object. For anything else keep a number in the object, raise it with each turn by such a write, and hand it over as the token.",
};
