// The little that HTML cannot do by itself: uploads, open details across updates, the value of a slider.
"use strict";

// htmx notes the address when it is loaded; nothing of this page stays in the browser.
sessionStorage.clear();

// Two quick changes of the plan may be answered in the other order: what is older is not shown.
let shown = 0;
document.addEventListener("htmx:beforeSwap", (event) => {
  const changes = Number(event.detail.xhr.getResponseHeader("X-Changes") ?? shown);
  if (changes < shown) event.detail.shouldSwap = false;
  else shown = changes;
});

// Details that were open stay open when a part of the page is replaced.
let opened = [];
document.addEventListener("htmx:beforeSwap", () => {
  opened = [...document.querySelectorAll("details[open][id]")].map((e) => e.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
});

document.addEventListener("htmx:sendError", () => {
  document.getElementById("lost").hidden = false;
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) document.getElementById("lost").hidden = true;
});

document.addEventListener("input", (event) => {
  if (event.target.type === "range") {
    event.target.form.querySelector("output").value = event.target.value;
  }
});

async function upload(file) {
  const place = document.getElementById("drop");
  const words = document.getElementById("upload-words");
  if (file.size > Number(place.dataset.most)) {
    words.textContent = "This file is too large to upload; start microagg page with it instead.";
    return;
  }
  words.textContent = "Uploading …";
  try {
    const answer = await fetch(place.dataset.to, {
      method: "PUT",
      headers: { "X-Name": encodeURIComponent(file.name) },
      body: file,
    });
    if (answer.ok) {
      window.location.assign(place.dataset.home); // which knows whether it is still being read
    } else {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      words.textContent = (page.querySelector("main p") || page.body).textContent;
    }
  } catch {
    words.textContent = "The upload was cut off.";
  }
}

document.addEventListener("change", (event) => {
  if (event.target.id === "file" && event.target.files.length) upload(event.target.files[0]);
});
for (const kind of ["dragover", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (!document.getElementById("drop")) return;
    event.preventDefault();
    if (kind === "drop" && event.dataTransfer.files.length) upload(event.dataTransfer.files[0]);
  });
}
