// Records as a table.
import type { Json } from "../api/shapes";
import { isNumber, isRecord } from "./exact";

export interface ResultTable {
  columns: string[];
  rows: { [name: string]: Json }[];
}

export const tableOf = (rows: { [name: string]: Json }[]): ResultTable => ({ columns: [...new Set(rows.flatMap((row) => Object.keys(row)))], rows });

/** The records of a result: the list of objects in it, or the one object. */
export function findRecords(content: Json): { [name: string]: Json }[] | null {
  if (isRecordList(content)) return content;
  if (!isRecord(content)) return null;
  const lists = Object.values(content).filter(isRecordList);
  if (lists[0]) return lists[0];
  const { record } = content;
  return isRecord(record) ? [record] : null;
}

function isRecordList(value: Json): value is { [name: string]: Json }[] {
  return Array.isArray(value) && value.length > 0 && value.every(isRecord);
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
