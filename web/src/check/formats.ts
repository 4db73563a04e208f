// A configuration in its system's own format and units. Where a system counts in milliseconds or in whole seconds, what
// lies between two of them goes up: a lease that is longer at the coordinator than it was planned with is the safe side.
// Where the rules do not hold any more with what was rounded, that is said in its place.

import type { Preset, System } from "fencegate";
import { Problem, readDrift, readDuration } from "../model/module";
import { inOnes, inSeconds, MILLISECOND, SECOND, upTo } from "../model/format";
import { rustNumber } from "../model/question";
import { checked, effective, type Values } from "./correct";
import { tokenOf } from "./lease";

/** What these systems take in whole seconds only. */
const WHOLE_SECONDS: Partial<Record<string, readonly string[]>> = {
  etcd: ["ttl"],
  patroni: ["ttl", "loop_wait", "retry_timeout", "safety_margin"],
  "azure-blob": ["lease"],
  hazelcast: ["session_ttl", "heartbeat"],
};

type Read = (key: string) => string;

export function configuration(preset: Preset, values: Values): { title: string; text: string } {
  const rounded: Values = {};
  for (const key of WHOLE_SECONDS[preset.system] ?? []) {
    const read = readDuration(effective(preset, values, key), "up", key);
    if (!(read instanceof Problem) && read % SECOND) rounded[key] = `${inSeconds(upTo(read, SECOND))}s`;
  }
  const keys = Object.keys(rounded);
  if (!keys.length) return written(preset, values);
  const holds = (tried: Values): boolean => {
    const found = checked(preset.system as System, tried);
    return !(found instanceof Problem) && found.ok;
  };
  const { title, text } = written(preset, { ...values, ...rounded });
  const words = `${keys.map((key) => `${key} = ${values[key]}`).join(", ")}: ${title} takes whole seconds`;
  if (holds(values) && !holds({ ...values, ...rounded }))
    return { title, text: `# ${words}, and rounded up these break a rule: choose whole ones.` };
  return { title, text: `${COMMENT[preset.system] ?? "#"} ${words}; rounded up.\n${text}` };
}

const COMMENT: Partial<Record<string, string>> = { etcd: "//" };

function written(preset: Preset, values: Values): { title: string; text: string } {
  const text: Read = (key) => effective(preset, values, key);
  const us = (key: string): bigint => {
    const read = readDuration(text(key), "down", key);
    return read instanceof Problem ? 0n : read;
  };
  const seconds = (key: string) => inSeconds(us(key));
  const ms = (key: string) => `${upTo(us(key), MILLISECOND) / MILLISECOND}`;
  const go = (key: string) => goDuration(us(key));
  switch (preset.system) {
    case "patroni":
      return {
        title: "Patroni YAML",
        text: [
          "# patronictl edit-config",
          `ttl: ${seconds("ttl")}`,
          `loop_wait: ${seconds("loop_wait")}`,
          `retry_timeout: ${seconds("retry_timeout")}`,
          "# in each member's own file:",
          "watchdog:",
          "  mode: required",
          `  safety_margin: ${text("safety_margin") === "-1" ? "-1" : seconds("safety_margin")}`,
        ].join("\n"),
      };
    case "kubernetes":
      return {
        title: "Kubernetes, Go",
        text: [
          "leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{",
          "\tLock:            lock,",
          `\tLeaseDuration:   ${go("lease_duration")},`,
          `\tRenewDeadline:   ${go("renew_deadline")},`,
          `\tRetryPeriod:     ${go("retry_period")},`,
          "\tReleaseOnCancel: true, // only once all work has stopped",
          "\tCallbacks:       callbacks,",
          "})",
        ].join("\n"),
      };
    case "etcd":
      return {
        title: "etcd, Go",
        text: [
          `session, err := concurrency.NewSession(client, concurrency.WithTTL(${seconds("ttl")}))`,
          "if err != nil {",
          "\treturn err",
          "}",
          'mutex := concurrency.NewMutex(session, "/locks/job")',
          "if err := mutex.Lock(ctx); err != nil {",
          "\treturn err",
          "}",
          "key, err := client.Get(ctx, mutex.Key())",
          "if err != nil {",
          "\treturn err",
          "}",
          "if len(key.Kvs) == 0 {",
          "\treturn concurrency.ErrSessionExpired",
          "}",
          `token := key.Kvs[0].CreateRevision // the fencing token: ${preset.token}`,
          `// the servers: --election-timeout=${ms("election_timeout")} --heartbeat-interval=${ms("heartbeat_interval")}`,
        ].join("\n"),
      };
    case "zookeeper":
      return {
        title: "ZooKeeper",
        text: [
          "# zoo.cfg",
          `tickTime=${ms("tick")}`,
          "",
          "// the client, Java:",
          `var zooKeeper = new ZooKeeper(servers, ${ms("session_timeout")}, watcher);`,
          "// the fencing token: the czxid of the lock's node, or its sequence number",
        ].join("\n"),
      };
    case "redisson":
      return {
        title: "Redisson, Java",
        text: [
          `config.setLockWatchdogTimeout(${ms("ttl")});`,
          ...(text("fenced") === "true"
            ? [
                'RFencedLock lock = redisson.getFencedLock("job");',
                values["lease_time"]
                  ? `Long token = lock.lockAndGetToken(${ms("lease_time")}, TimeUnit.MILLISECONDS);`
                  : "Long token = lock.lockAndGetToken();",
              ]
            : [
                'RLock lock = redisson.getLock("job");',
                values["lease_time"] ? `lock.lock(${ms("lease_time")}, TimeUnit.MILLISECONDS); // no watchdog` : "lock.lock();",
              ]),
        ].join("\n"),
      };
    case "redlock":
      return {
        title: "Redlock, node-redlock",
        text: [
          `// ${text("nodes") || "5"} independent Redis nodes`,
          `const redlock = new Redlock(clients, { driftFactor: ${factor(text("drift_factor"))} });`,
          `const lock = await redlock.acquire(["job"], ${ms("ttl")});`,
        ].join("\n"),
      };
    case "consul":
      return {
        title: "Consul, HTTP API",
        text: [
          "curl --request PUT http://127.0.0.1:8500/v1/session/create --data @- <<'END'",
          JSON.stringify(
            { Name: "job", TTL: `${seconds("ttl")}s`, LockDelay: `${seconds("lock_delay")}s`, Behavior: "release" },
            null,
            2,
          ),
          "END",
        ].join("\n"),
      };
    case "dynamodb":
      return {
        title: "DynamoDB lock client, Java",
        text: [
          'AmazonDynamoDBLockClientOptions.builder(dynamoDb, "locks")',
          "    .withTimeUnit(TimeUnit.MILLISECONDS)",
          `    .withLeaseDuration(${ms("lease_duration")}L)`,
          `    .withHeartbeatPeriod(${ms("heartbeat")}L)`,
          "    .withCreateHeartbeatBackgroundThread(true)",
          "    .build();",
          ...(values["safe_time"] ? [`// AcquireLockOptions: withSessionMonitor(${ms("safe_time")}L, callback)`] : []),
        ].join("\n"),
      };
    case "shedlock":
      return {
        title: "ShedLock, Java",
        text: [
          `@SchedulerLock(name = "job", lockAtMostFor = "${iso(us("lock_at_most_for"))}", lockAtLeastFor = "${iso(us("lock_at_least_for"))}")`,
          ...(text("db_time") === "true" ? ["// JdbcTemplateLockProvider.Configuration: .usingDbTime()"] : []),
        ].join("\n"),
      };
    case "azure-blob":
      return {
        title: "Azure CLI",
        text: `az storage blob lease acquire --container-name locks --blob-name job \\\n  --lease-duration ${text("lease") === "infinite" ? "-1" : seconds("lease")}`,
      };
    case "hazelcast":
      return {
        title: "Hazelcast YAML",
        text: [
          "hazelcast:",
          "  cp-subsystem:",
          "    cp-member-count: 3",
          `    session-time-to-live-seconds: ${seconds("session_ttl")}`,
          `    session-heartbeat-interval-seconds: ${seconds("heartbeat")}`,
        ].join("\n"),
      };
    case "chubby":
      return {
        title: "Chubby, as published",
        text: [
          `lease ${text("lease")}`,
          `grace ${text("grace")}`,
          "# every request to the resource carries the sequencer (GetSequencer, CheckSequencer)",
        ].join("\n"),
      };
    default:
      return {
        title: preset.system,
        text: Object.keys(preset.defaults)
          .map((key) => `${key} = ${text(key)}`)
          .join("\n"),
      };
  }
}

/** A part of one, as node-redlock takes it. */
function factor(text: string): string {
  const read = readDrift(text, "drift_factor");
  return read instanceof Problem ? text : inOnes(read);
}

function goDuration(us: bigint): string {
  if (us % SECOND === 0n) return `${us / SECOND} * time.Second`;
  return us % MILLISECOND === 0n ? `${us / MILLISECOND} * time.Millisecond` : `${us} * time.Microsecond`;
}

/** ISO 8601, as Spring takes it. */
function iso(us: bigint): string {
  return `PT${inSeconds(us)}S`;
}

/** What checks the token, with our core: whole items, which compile as they stand. */
export function snippet(preset: Preset, values: Values, drift: bigint, rtt: bigint): string {
  const [lease] = Object.keys(preset.defaults);
  const read = lease === undefined ? undefined : readDuration(effective(preset, values, lease), "down", lease);
  const planned = read !== undefined && !(read instanceof Problem);
  const fenced = tokenOf(preset, values).ordered;
  const plan = planned
    ? [
        "pub fn lease() -> Result<Plan, OutOfRange> {",
        `    Plan::for_ttl(Duration::from_micros(${rustNumber(read)}))`,
        `        .drift(Drift::from_ppb(${rustNumber(drift)}))`,
        `        .round_trip(Duration::from_micros(${rustNumber(rtt)}))`,
        "        .plan()",
        "}",
      ]
    : ["// a lease without end has no plan"];
  const fence = fenced
    ? [
        `/// The resource. The token is ${preset.token}; \`put\` stores a record and reads it back.`,
        "pub fn admit(",
        "    fence: &mut Fence,",
        "    stamp: Stamp,",
        "    put: impl FnOnce(FenceRecord) -> std::io::Result<Proof>,",
        ") -> Result<Pass, Box<dyn std::error::Error>> {",
        "    match fence.admit(stamp) {",
        "        Admitted::Current(pass) => Ok(pass),",
        "        Admitted::Raise(raise) => {",
        "            let proof = put(raise.record())?; // stored first",
        "            Ok(fence.commit(raise, proof)?)",
        "        }",
        "        Admitted::Refused(refused) => Err(refused.into()), // names the stamp that beat it",
        "    }",
        "}",
      ]
    : ["// there is no ordered token here: nothing for a fence to compare"];
  const uses = [
    ...(fenced ? ["Admitted", "Fence", "FenceRecord", "Pass", "Proof", "Stamp"] : []),
    ...(planned ? ["Drift", "Duration", "OutOfRange", "Plan"] : []),
  ].sort();
  return [...(uses.length ? [`use fencegate::{${uses.join(", ")}};`, ""] : []), ...plan, "", ...fence].join("\n");
}
