"use strict";
// The page is whole without this. With it commands are copied, tables are sorted by their columns, galleries are filtered
// and sorted, and the address "#example=NAME" opens an example, large and with all that is known of it.
document.documentElement.classList.add("scripted");

function element(tag, text = "", attributes = {}, children = []) {
  const made = document.createElement(tag);
  made.append(text, ...children);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// ---- commands: selected and copied, so that where a browser refuses to copy a key does it
function makeCopyable(code) {
  const button = element("button", "copy", { type: "button", "aria-label": "Copy the command", "aria-live": "polite" });
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(code);
    if (document.execCommand("copy")) button.textContent = "copied";
  });
  code.after(button);
}

// ---- tables: numbers before texts, empty cells last
function compareCells(a, b) {
  const isEmpty = (text) => text === "" || text === "-";
  const isNumber = (text) => Number.isFinite(Number(text));
  if (isEmpty(a) || isEmpty(b)) return (isEmpty(a) - isEmpty(b)) * Infinity || 0;
  if (isNumber(a) && isNumber(b)) return Number(a) - Number(b);
  return isNumber(b) - isNumber(a) || a.localeCompare(b, undefined, { numeric: true });
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = element("button", "", { type: "button" }, [...head.childNodes]);
    head.append(button);
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const ordered = [...table.tBodies[0].rows].sort((a, b) => {
        const order = compareCells(key(a), key(b));
        return down && Number.isFinite(order) ? -order : order;
      });
      table.tBodies[0].append(...ordered);
    });
  });
}

// ---- galleries: buttons for what became of the pictures, lists of classes and of orders
const ORDERS = {
  "as listed": () => 0,
  "by class": (a, b) => classesOf(a).join().localeCompare(classesOf(b).join()),
  "by score, highest first": (a, b) => scoreOf(b) - scoreOf(a),
  "by score, lowest first": (a, b) => scoreOf(a) - scoreOf(b),
  "by name": (a, b) => a.dataset.name.localeCompare(b.dataset.name, undefined, { numeric: true }),
};
const classesOf = (picture) => JSON.parse(picture.dataset.classes);
const scoreOf = (picture) => Number(picture.dataset.score || -Infinity);
const shownIn = (gallery) => [...gallery.children].filter((picture) => !picture.hidden);
const linkOf = (picture) => picture.querySelector("a.name");

function makeFilterable(gallery) {
  const listed = [...gallery.children];
  const kinds = new Map();
  for (const { dataset } of listed) kinds.set(dataset.kind, (kinds.get(dataset.kind) ?? 0) + 1);
  const classes = [...new Set(listed.flatMap(classesOf))].sort((a, b) => a.localeCompare(b));
  const asked = { kind: null, class: "", order: "as listed" };
  const count = element("span", "", { role: "status" });
  const show = () => {
    const fits = (picture) =>
      (asked.kind === null || picture.dataset.kind === asked.kind) &&
      (!asked.class || classesOf(picture).includes(asked.class));
    for (const picture of listed) picture.hidden = !fits(picture);
    gallery.append(...[...listed].sort(ORDERS[asked.order]));
    count.textContent = `${shownIn(gallery).length} of ${listed.length} shown`;
  };
  const kindButton = (kind, text) => {
    const button = element("button", text, { type: "button", "aria-pressed": kind === null });
    button.addEventListener("click", () => {
      asked.kind = kind;
      for (const other of button.parentNode.children) other.setAttribute("aria-pressed", other === button);
      show();
    });
    return button;
  };
  const list = (name, label, options) => {
    const every = options.map(([value, text]) => element("option", text, { value }));
    const select = element("select", "", { "aria-label": label }, every);
    select.addEventListener("change", () => {
      asked[name] = select.value;
      show();
    });
    return select;
  };
  const buttons = [...kinds].map(([kind, number]) => kindButton(kind, `${kind || "others"} ${number}`));
  const scored = listed.some((picture) => picture.dataset.score);
  const known = { "by class": classes.length > 1, "by score, highest first": scored, "by score, lowest first": scored };
  const orders = Object.keys(ORDERS).filter((name) => known[name] ?? true);
  const tools = element("div", "", { class: "tools", role: "group", "aria-label": "Filter and order" });
  if (kinds.size > 1) tools.append(element("span", "", {}, [kindButton(null, `all ${listed.length}`), ...buttons]));
  if (classes.length > 1) tools.append(list("class", "Class", [["", "every class"], ...classes.map((name) => [name, name])]));
  tools.append(list("order", "Order", orders.map((name) => [name, name])), count);
  gallery.before(tools);
  show();
}

// ---- one example: opened by its address, which follows what is opened
const viewer = element("dialog", "", { class: "viewer", "aria-label": "One example" });
const content = element("div");
const step = (text, label, by) => {
  const button = element("button", text, { type: "button", "aria-label": label });
  button.addEventListener("click", () => go(by));
  return button;
};
const closing = element("form", "", { method: "dialog" }, [element("button", "✕", { "aria-label": "Close" })]);
viewer.append(element("div", "", { class: "tools" }, [step("←", "Previous", -1), step("→", "Next", 1), closing]), content);
document.body.append(viewer);
let opened = null;

function open(picture) {
  opened = picture;
  content.replaceChildren(picture.querySelector("figure").cloneNode(true));
  if (!viewer.open) viewer.showModal();
}

function neighbour(picture, by) {
  const shown = shownIn(picture.parentNode);
  return shown[(shown.indexOf(picture) + by + shown.length) % shown.length];
}

function go(by) {
  const next = neighbour(opened, by);
  history.replaceState(null, "", linkOf(next).href);
  open(next);
}

function openAddressed() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const found = document.getElementById([...asked].map(([name, value]) => `${name}=${value}`).join("&"));
  if (found?.matches(".picture")) open(found);
  else if (viewer.open) viewer.close();
}

viewer.addEventListener("close", () => {
  if (location.hash.startsWith("#example=")) history.replaceState(null, "", location.href.split("#")[0]);
  linkOf(opened).focus();
});
document.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
  if (viewer.open) go(by);
  else if (document.activeElement.matches(".picture a.name")) linkOf(neighbour(document.activeElement.closest(".picture"), by)).focus();
  else return;
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  const picture = event.target.closest(".gallery .views")?.closest(".picture");
  if (picture) linkOf(picture).click();
});

document.querySelectorAll(".steps code").forEach(makeCopyable);
document.querySelectorAll("table.sorts").forEach(makeSortable);
document.querySelectorAll(".gallery").forEach((gallery) => gallery.children.length > 1 && makeFilterable(gallery));
addEventListener("hashchange", openAddressed);
openAddressed();
