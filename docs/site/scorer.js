// Ranks results of the search: decisions, costs and the schema are for those who change the program.
var Scorer = {
  score: ([page, , , , score]) => score - (/^docs\/(adr|costs|schema)/.test(page) ? 100 : 0),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
