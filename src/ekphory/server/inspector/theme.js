// Light or dark: as the system has it, or as chosen here.

const STORED = "ekphory.theme";

export function setUpTheme() {
  const select = document.getElementById("theme");
  select.value = localStorage.getItem(STORED) ?? "";
  apply(select.value);
  select.addEventListener("change", () => {
    if (select.value) localStorage.setItem(STORED, select.value);
    else localStorage.removeItem(STORED);
    apply(select.value);
  });
}

function apply(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
