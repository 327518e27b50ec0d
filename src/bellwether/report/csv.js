// The numbers behind the page, for the link that downloads them.
"use strict";

function offerCsv(lines) {
  const quote = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const text = lines.map((line) => line.map(quote).join(",") + "\n").join("");
  document.getElementById("csv").href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
}
