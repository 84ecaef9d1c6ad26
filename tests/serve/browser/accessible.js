// What a page lacks for those who read it with a screen reader, a keyboard, or weak eyes; a list of texts, best empty.
const found = [];
const shown = (one) => one.checkVisibility({ checkVisibilityCSS: true }) && one.getBoundingClientRect().width > 1;
const told = (one) => `<${one.tagName.toLowerCase()} class="${one.getAttribute("class") ?? ""}"> ${one.textContent.trim().slice(0, 40)}`;
const name = (one) =>
  (one.getAttribute("aria-label") ||
    (one.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join("") ||
    one.querySelector(":scope > title")?.textContent ||
    one.getAttribute("alt") ||
    one.textContent ||
    one.getAttribute("title") ||
    "").trim();

if (!document.documentElement.lang) found.push("the page names no language");
if (!document.title.trim()) found.push("the page has no title");

for (const one of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
  const label = [...(one.labels ?? [])].map((each) => each.textContent).join("").trim();
  if (!label && !one.getAttribute("aria-label") && !one.getAttribute("aria-labelledby")) found.push(`no label: ${one.outerHTML.slice(0, 90)}`);
}
for (const one of document.querySelectorAll("a[href], button, summary")) if (!name(one)) found.push(`no name: ${one.outerHTML.slice(0, 90)}`);
for (const one of document.querySelectorAll("img")) if (!one.hasAttribute("alt")) found.push(`no alt: ${one.outerHTML.slice(0, 90)}`);
for (const one of document.querySelectorAll("svg")) {
  if (one.closest("[aria-hidden=true]") || one.ownerSVGElement) continue;
  const said = one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.querySelector(":scope > title");
  if (!said || !["img", "group", "graphics-document", "figure"].includes(one.getAttribute("role"))) found.push(`a picture without role or name: ${one.outerHTML.slice(0, 90)}`);
  if (one.getAttribute("role") === "img" && one.querySelector("a[href]")) found.push("links inside of a picture that counts as one image");
}

let level = 0;
for (const one of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
  const own = Number(one.tagName[1]);
  if (own > level + 1) found.push(`h${own} after ${level ? `h${level}` : "nothing"}: ${told(one)}`);
  level = own;
}
if (document.querySelectorAll("h1").length !== 1) found.push(`${document.querySelectorAll("h1").length} h1`);

const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
for (const id of new Set(ids.filter((one, index) => ids.indexOf(one) !== index))) found.push(`the id ${id} twice`);
for (const one of document.querySelectorAll("table")) if (!one.querySelector("th")) found.push(`a table without headings: ${told(one)}`);
if (!document.querySelector("main")) found.push("no main");

// Contrast of each text with what lies behind it, as WCAG 2 computes it.
const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const colour = (text) => {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = text;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
};
const over = (top, below) => [0, 1, 2].map((part) => top[part] * top[3] + below[part] * (1 - top[3])).concat(1);
const light = ([red, green, blue]) => {
  const [r, g, b] = [red, green, blue].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (one) => {
  const layers = [];
  for (let at = one; at; at = at.parentElement) {
    layers.push(colour(getComputedStyle(at).backgroundColor));
    if (layers.at(-1)[3] === 1) break;
  }
  return layers.reverse().reduce((below, top) => over(top, below), colour("Canvas"));
};
const behind = (text) => {
  const box = text.getBoundingClientRect();
  const here = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2).filter((one) => !text.contains(one) && !one.contains(text));
  const painted = here.filter((one) => one instanceof SVGRectElement && getComputedStyle(one).fill !== "none");
  const base = ground(text.ownerSVGElement);
  return painted.reverse().reduce((below, one) => {
    const fill = colour(getComputedStyle(one).fill);
    fill[3] *= Number(getComputedStyle(one).fillOpacity) * Number(getComputedStyle(one).opacity);
    return over(fill, below);
  }, base);
};
const seen = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const one = walker.currentNode.parentElement;
  if (!/[\p{L}\p{N}]/u.test(walker.currentNode.data) || seen.has(one) || !shown(one) || one.closest("option, title, style, script, .hidden, .skip")) continue;
  seen.add(one);
  if (one.closest("[disabled], [aria-disabled=true]")) continue;
  const style = getComputedStyle(one);
  const isDrawn = one instanceof SVGElement;
  if (isDrawn) one.scrollIntoView({ block: "center", inline: "center" });
  const back = isDrawn ? behind(one) : ground(one);
  const ink = colour(isDrawn ? style.fill : style.color);
  for (let at = one; at; at = at.parentElement) ink[3] *= Number(getComputedStyle(at).opacity);
  const [high, low] = [light(over(ink, back)), light(back)].sort((a, b) => b - a);
  const ratio = (high + 0.05) / (low + 0.05);
  const size = parseFloat(style.fontSize);
  const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
  if (ratio < least) found.push(`contrast ${ratio.toFixed(2)} < ${least}: ${told(one)}`);
}
return found;
