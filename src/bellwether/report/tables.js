// The buttons below each table: the same table as a file for other programs.
"use strict";

function offerTables(tables) {
  const KINDS = { csv: "text/csv", md: "text/markdown", tex: "application/x-tex" };
  for (const bar of document.querySelectorAll(".exports")) {
    for (const button of bar.children) {
      const ending = button.value;
      button.addEventListener("click", () => {
        const blob = new Blob([tables[bar.dataset.table][ending]], { type: KINDS[ending] });
        const link = document.createElement("a");
        link.href = URL.createObjectURL(blob);
        link.download = `${bar.dataset.table}.${ending}`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60000);
      });
    }
  }
}
