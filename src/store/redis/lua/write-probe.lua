-- Writes nothing. It is declared as a script that writes, so Redis refuses it whenever it accepts no writes.
return 1
