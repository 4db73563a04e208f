// The page: what is typed goes to the module, what the module answers is shown.

import init from "fencegate";
import { showAnswer } from "./answer";
import { element } from "./dom";
import { duration } from "./format";
import { onChange, readForm, showProblems, writeForm } from "./form";
import { drawPicture } from "./picture/picture";
import { ask, type Asked } from "./question";
import { command, fromHash, toHash } from "./settings";

const picture = element("picture", HTMLElement);
const status = element("status", HTMLElement);
let shown: Asked | undefined;

/** Runs the last thing that it is given, once nothing more has come for that long. */
function settled(ms: number): (act: () => void) => void {
  let timer: number | undefined;
  return (act) => {
    clearTimeout(timer);
    timer = setTimeout(act, ms);
  };
}

/** Said once somebody stops typing, not at every key. */
const afterTyping = settled(700);
const announce = (text: string) => afterTyping(() => (status.textContent = text));

/** Browsers refuse an address that changes at every key. */
const addressSettled = settled(200);

function update(): void {
  const settings = readForm();
  const asked = ask(settings);
  const answered = "plan" in asked;
  document.body.classList.toggle("unanswered", !answered);
  document.body.classList.toggle("unsafe", answered && !asked.plan.safe);
  for (const id of ["figure", "figures"]) element(id, HTMLElement).hidden = !answered;
  if (answered) {
    shown = asked;
    showProblems({});
    showAnswer(asked);
    element("command", HTMLElement).textContent = command(settings);
    drawPicture(picture, asked);
    announce(`Window ${duration(BigInt(asked.plan.window_us))}, margin ${duration(BigInt(asked.plan.margin_us))}.`);
  } else {
    shown = undefined;
    showProblems(asked);
    for (const id of ["headline", "strip"]) element(id, HTMLElement).textContent = "—";
    element("sentence", HTMLElement).textContent = "No answer: the marked input says why.";
    element("warnings", HTMLElement).replaceChildren();
    announce(Object.values(asked).join(" "));
  }
}

async function start(): Promise<void> {
  await init();
  writeForm(fromHash(location.hash));
  onChange(() => {
    update();
    addressSettled(() => history.replaceState(null, "", toHash(readForm())));
  });
  addEventListener("hashchange", () => {
    writeForm(fromHash(location.hash));
    update();
  });
  update();
  let width = picture.clientWidth;
  new ResizeObserver(() => {
    if (picture.clientWidth === width) return;
    width = picture.clientWidth;
    if (shown) drawPicture(picture, shown);
  }).observe(picture);
}

start().catch((error: unknown) => {
  console.error(error);
  element("headline", HTMLElement).textContent = "—";
  element("sentence", HTMLElement).textContent = "The calculator did not load: this browser has no WebAssembly, or a file is missing.";
});
