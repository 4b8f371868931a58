// Records as a table.
import type { Json } from "../api/shapes";
import { isNumber } from "./exact";

export interface ResultTable {
  columns: string[];
  rows: { [name: string]: Json }[];
}

export function cellText(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function RecordTable({ table, label }: { table: ResultTable; label: string }) {
  return (
    <div className="table-box" role="group" aria-label={label} tabIndex={0}>
      <table className="table values">
        <thead>
          <tr>
            {table.columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {table.columns.map((column) => (
                <td key={column} className={isNumber(row[column]) ? "number" : ""} title={cellText(row[column])}>
                  {row[column] === null ? <span className="soft">null</span> : cellText(row[column])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
