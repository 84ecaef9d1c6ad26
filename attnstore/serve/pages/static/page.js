// This file makes the pages smoother where scripts run. Nothing needs it: every link and form works without.
//
// Texts of stores are never turned into markup here: pages come from this origin, already escaped, and are parsed by
// DOMParser, which runs no scripts; everything else is textContent.

const AGAIN = 2000; // milliseconds until a page that waits for its answer looks again
let asking = null; // the request for the next state, which a later one replaces
let waiting = 0;

const live = () => document.querySelector("[data-live]");

// ---- The same page in another state, without a full reload

// Whether an address is a state of the page that is shown: what lies behind other paths is a page of its own.
function isHere(url) {
  return url.origin === location.origin && url.pathname === location.pathname;
}

// Shows the state behind an address. On any trouble the browser goes there itself.
async function show(url, { push = true, quiet = false } = {}) {
  asking?.abort();
  clearTimeout(waiting);
  const mine = (asking = new AbortController());
  const old = live();
  if (!quiet) old.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { headers: { accept: "text/html" }, signal: mine.signal });
    if (answer.redirected || !(answer.headers.get("content-type") || "").startsWith("text/html")) throw new Error("no page");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("[data-live]");
    if (!fresh) throw new Error("another page");
    const focused = placeOf(document.activeElement, old);
    const scrolled = [...old.querySelectorAll("[tabindex], .heads-scroll, .schema")].map((box) => [box.scrollLeft, box.scrollTop]);
    const opened = openedIn(old);
    old.replaceWith(document.adoptNode(fresh));
    document.title = page.title;
    if (push) history.pushState(null, "", url);
    prepare(fresh);
    reopen(fresh, opened);
    [...fresh.querySelectorAll("[tabindex], .heads-scroll, .schema")].forEach((box, index) => {
      if (scrolled[index]) [box.scrollLeft, box.scrollTop] = scrolled[index];
    });
    refocus(focused, fresh);
    announce(fresh.querySelector("[role=alert], .missing, [data-said]")?.textContent || page.title);
  } catch (error) {
    if (mine.signal.aborted) return;
    if (push) location.assign(url);
    else location.reload();
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-live] a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.hasAttribute("download") || link.hasAttribute("target")) return;
  const url = new URL(link.getAttribute("href"), location.href); // the attribute: href of a link in SVG is an object
  if (!isHere(url) || url.hash) return;
  event.preventDefault();
  show(url);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.closest("[data-live]") || form.method !== "get") return;
  const url = new URL(form.getAttribute("action") || location.pathname, location.href);
  if (!isHere(url)) return;
  // Empty fields are defaults; without them the address that one shares is short.
  url.search = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== "")).toString();
  event.preventDefault();
  show(url);
});

addEventListener("popstate", () => {
  if (live()) show(new URL(location.href), { push: false });
});

// ---- Focus and open parts, which a new state keeps

// Where an element is: by its id, its place in a grid, or its way down from the root by positions and names.
function placeOf(element, root) {
  if (!element || element === root || !root.contains(element)) return null;
  if (element.id) return `#${CSS.escape(element.id)}`;
  const { row, column } = element.dataset;
  if (row !== undefined) return `[data-row="${row}"][data-column="${column}"]`;
  const way = [];
  for (let at = element; at !== root; at = at.parentElement) {
    way.unshift(`${at.localName}:nth-child(${[...at.parentElement.children].indexOf(at) + 1})`);
  }
  return `:scope > ${way.join(" > ")}`;
}

function refocus(place, root) {
  if (!place) return;
  const found = root.querySelector(place) || root.querySelector("h1");
  if (found.localName === "h1") found.tabIndex = -1;
  found.focus({ preventScroll: true });
}

const openedIn = (root) => [...root.querySelectorAll("details[open] > summary")].map((one) => one.textContent);

function reopen(root, opened) {
  for (const summary of root.querySelectorAll("details > summary")) {
    if (opened.includes(summary.textContent)) summary.parentElement.open = true;
  }
}

// Says to those who do not see it what changed.
function announce(words) {
  let region = document.querySelector("#announced");
  if (!region) {
    region = document.body.appendChild(document.createElement("p"));
    region.id = "announced";
    region.className = "hidden";
    region.setAttribute("aria-live", "polite");
  }
  region.textContent = words.trim().replace(/\s+/g, " ").slice(0, 300);
}

// ---- Arrow keys in a grid of links: to the nearest one in that direction, as it lies on the screen

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function nearest(grid, from, [right, down]) {
  const middle = (element) => {
    const box = element.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const [x, y] = middle(from);
  let best = null;
  let least = Infinity;
  for (const link of grid.querySelectorAll("a[href]")) {
    const [dx, dy] = middle(link).map((value, axis) => value - (axis ? y : x));
    const along = dx * right + dy * down;
    const across = Math.abs(dx * down) + Math.abs(dy * right);
    if (along > 1 && along + 3 * across < least) [best, least] = [link, along + 3 * across];
  }
  return best;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea[data-submit]")) {
    event.preventDefault();
    event.target.form.requestSubmit();
    return;
  }
  const step = ARROWS[event.key];
  const link = event.target.closest?.("[data-grid] a[href], .grid a[href]");
  if (!step || !link || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const grid = link.closest("[data-grid], .grid");
  const next = nearest(grid, link, step);
  event.preventDefault();
  if (!next) return;
  link.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

// A grid is one stop of the Tab key: its current link, or the first.
function oneStop(grid) {
  const links = [...grid.querySelectorAll("a[href]")];
  const stop = links.find((link) => link.hasAttribute("aria-current")) || links[0];
  for (const link of links) link.tabIndex = link === stop ? 0 : -1;
}

// ---- The sentence view: the lines of the word under the pointer

function light(root, word) {
  for (const drawing of root.querySelectorAll("[data-sentence]")) {
    const { query, key } = word?.dataset ?? {};
    drawing.classList.toggle("hovering", Boolean(word));
    for (const mark of drawing.querySelectorAll("[data-query], [data-key]")) {
      const isLit = (query !== undefined && mark.dataset.query === query) || (key !== undefined && mark.dataset.key === key);
      mark.classList.toggle("lit", Boolean(word) && isLit);
    }
  }
}

for (const [start, end] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
  const word = (event) => event.target.closest?.("[data-live] a[data-query], [data-live] a[data-key]");
  document.addEventListener(start, (event) => word(event) && light(live(), word(event)));
  document.addEventListener(end, (event) => word(event) && light(live(), null));
}

// ---- Copying

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button[data-copy]");
  if (!button) return;
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(new URL(button.dataset.copy, location.href).href);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed to copy";
  }
  announce(button.textContent);
  setTimeout(() => (button.textContent = words), 1500);
});

// ---- What a page gets when it is shown, the first time and after each change

function prepare(root) {
  for (const hidden of root.querySelectorAll("button[data-copy], [data-enhanced]")) hidden.hidden = false;
  for (const grid of root.querySelectorAll("[data-grid], .grid")) oneStop(grid);
  const again = root.querySelector("[data-again]") || (root.matches?.("[data-again]") ? root : null);
  if (again) waiting = setTimeout(() => show(new URL(again.dataset.again, location.href), { push: false, quiet: true }), AGAIN);
}

prepare(document);
