-- The command that appends a ledger line. `seq`: its number, which is its position in the stream; `bal`: the balance
-- after it. All arguments are texts. `LINE` in change.lua has the positions of the values that it reads again.
local function line(ledger, seq, at, kind, debit, credit, paid, bal, ref, group, model, key, memo)
  return { 'XADD', ledger, seq .. '-0', 'at', at, 'kind', kind, 'debit', debit, 'credit', credit, 'amount', paid,
    'bal', bal, 'ref', ref, 'group', group, 'model', model, 'key', key, 'memo', memo }
end
