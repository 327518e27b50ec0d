// The files of the page: every table for other programs, and the numbers behind the curves.
"use strict";

function offerFile(link, text, kind) {
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
}

function offerTables(tables) {
  const KINDS = { csv: "text/csv", md: "text/markdown", tex: "application/x-tex" };
  for (const link of document.querySelectorAll(".exports a")) {
    const [name, ending] = link.download.split(".");
    offerFile(link, tables[name][ending], KINDS[ending]);
  }
}

function offerCsv(lines) {
  const quote = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const text = lines.map((line) => line.map(quote).join(",") + "\n").join("");
  offerFile(document.getElementById("csv"), text, "text/csv");
}
