"use strict";
(() => {
  const form = document.getElementById("form");
  if (!form) return;
  const problem = document.getElementById("problem");
  const answer = document.getElementById("answer");
  const result = document.getElementById("result");

  // The members of a form or a fieldset that belong to it and to no fieldset within.
  const own = (place) => [...place.querySelectorAll("[data-kind]")]
    .filter((one) => one.parentElement.closest("[data-kind]") === (place === form ? null : place));

  // What a control says; undefined where nothing is filled in.
  function value(place) {
    const kind = place.dataset.kind;
    if (kind === "object") {
      const object = members(place);
      return Object.keys(object).length > 0 || "required" in place.dataset ? object : undefined;
    }
    if (kind === "array") {
      const list = own(place).map(value).filter((one) => one !== undefined);
      return list.length > 0 || "required" in place.dataset ? list : undefined;
    }
    const text = place.querySelector("input, select, textarea").value;
    if (text === "") return undefined;
    if (kind === "string") return text;
    try { return JSON.parse(text); } catch { return text; }
  }

  function members(place) {
    const object = {};
    for (const one of own(place)) {
      const found = value(one);
      if (found !== undefined) object[one.dataset.name] = found;
    }
    return object;
  }

  // Items get the pointers and the ids of their places in the list.
  function number(list) {
    const base = list.dataset.path;
    [...list.querySelector("ol").children].forEach((item, index) => {
      for (const one of item.querySelectorAll("*")) {
        for (const name of ["data-path", "id", "for", "aria-describedby"]) {
          const text = one.getAttribute(name);
          if (text === null) continue;
          const place = item.dataset.place ?? "*";
          one.setAttribute(name, text.split(" ").map((part) => part.replace(`${base}/${place}`, `${base}/${index}`)).join(" "));
        }
      }
      item.dataset.place = String(index);
    });
  }

  form.addEventListener("click", (event) => {
    const list = event.target.closest("[data-kind=array]");
    if (!list) return;
    if (event.target.matches(".add") && event.target.parentElement === list) {
      const items = list.querySelector("ol");
      const most = Number(list.dataset.most ?? Infinity);
      if (items.children.length >= most) return say(list.dataset.path, `at most ${most}`);
      items.append(list.querySelector("template").content.cloneNode(true));
      number(list);
      items.lastElementChild.querySelector("input, select, textarea")?.focus();
    } else if (event.target.matches(".remove")) {
      event.target.closest("li").remove();
      number(list);
      list.querySelector(":scope > .add").focus();
    }
  });

  function say(path, text) {
    const error = document.getElementById(`error${path}`);
    if (!error) return false;
    error.textContent = text;
    document.getElementById(`input${path}`)?.setAttribute("aria-invalid", "true");
    return true;
  }

  function clear() {
    problem.hidden = true;
    problem.textContent = "";
    for (const error of form.querySelectorAll(".error")) error.textContent = "";
    for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  }

  function complain(text) {
    problem.textContent = text;
    problem.hidden = false;
    (form.querySelector("[aria-invalid]") ?? problem).focus();
  }

  // What the browser finds wrong by itself.
  function isValid() {
    let valid = true;
    for (const control of form.querySelectorAll("input, select, textarea")) {
      const place = control.closest("[data-kind]");
      // A member of a record that is left out as a whole may be missing.
      const record = place.parentElement.closest("[data-kind=object]:not([data-required])");
      const excused = control.validity.valueMissing && record && value(record) === undefined;
      if (!control.validity.valid && !excused) {
        valid = false;
        say(place.dataset.path, control.validationMessage);
      }
    }
    for (const list of form.querySelectorAll("[data-kind=array][data-least]")) {
      const count = list.querySelector("ol").children.length;
      if (count < Number(list.dataset.least) && (count > 0 || "required" in list.dataset)) {
        valid = false;
        say(list.dataset.path, `at least ${list.dataset.least}`);
      }
    }
    return valid;
  }

  const text = (found) => typeof found === "string" ? found : JSON.stringify(found);

  function table(heads, rows) {
    const made = document.createElement("table");
    if (heads) {
      const head = made.createTHead().insertRow();
      for (const name of heads) {
        const cell = document.createElement("th");
        cell.scope = "col";
        cell.textContent = name;
        head.append(cell);
      }
    }
    const body = made.createTBody();
    for (const cells of rows) {
      const row = body.insertRow();
      cells.forEach((cell, index) => {
        const made = document.createElement(!heads && index === 0 ? "th" : "td");
        if (!heads && index === 0) made.scope = "row";
        made.textContent = cell === null || cell === undefined ? "" : text(cell);
        row.append(made);
      });
    }
    // A table that is wider than the page scrolls in a place of its own, by keyboard as well: no word of it is broken.
    const place = document.createElement("div");
    place.className = "wide";
    place.tabIndex = 0;
    place.setAttribute("role", "region");
    place.setAttribute("aria-label", "Result");
    place.append(made);
    return place;
  }

  function show(found) {
    result.textContent = "";
    const records = Array.isArray(found.records) ? found.records : null;
    if (records) {
      const heads = [...new Set(records.flatMap(Object.keys))];
      const count = document.createElement("p");
      count.textContent = records.length === 1 ? "1 record" : `${records.length} records`;
      result.append(count);
      if (records.length > 0) result.append(table(heads, records.map((record) => heads.map((name) => record[name]))));
      if (found.next) {
        const more = document.createElement("button");
        more.type = "button";
        more.textContent = "Next page";
        more.addEventListener("click", () => send({ ...members(form), cursor: found.next }));
        result.append(more);
      }
    } else {
      const shown = found.record && typeof found.record === "object" ? found.record : found;
      if (found.status) {
        const status = document.createElement("p");
        status.textContent = found.status;
        result.append(status);
      }
      result.append(table(null, Object.entries(shown)));
    }
    answer.hidden = false;
  }

  /** What the gateway says of one error: each has a line of the detail, which begins with its path. */
  function sentence(found, error) {
    const begins = [`${error.path}: `, `${JSON.stringify(error.path)}: `];
    for (const line of (found.detail ?? "").split("\n")) {
      const begin = begins.find((begin) => line.startsWith(begin));
      if (begin) return line.slice(begin.length);
    }
    return "not allowed";
  }

  async function send(body) {
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    try {
      const response = await fetch(location.pathname, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json" },
        body: JSON.stringify(body),
      });
      const found = await response.json();
      if (response.ok) return show(found);
      answer.hidden = true;
      const elsewhere = (found.errors ?? []).filter((error) => !say(error.path, sentence(found, error)));
      complain(elsewhere.length > 0 || !found.errors?.length ? found.detail : "Some values are not allowed.");
    } catch (error) {
      complain(`The gateway did not answer: ${error.message}`);
    } finally {
      button.disabled = false;
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clear();
    if (isValid()) return send(members(form));
    complain("Some values are missing or not allowed.");
  });
})();
