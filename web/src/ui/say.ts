// What a reader of the screen hears, once the typing stops.

let timer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string, after = 0): void {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const status = document.getElementById("status");
    if (status) status.textContent = text;
  }, after);
}
