// A table that becomes a list of cards on a narrow page.
import type { ReactNode } from "react";

export interface Column<T> {
  head: string;
  cell: (row: T) => ReactNode;
  /** Numbers are set to the right. */
  number?: boolean;
  /** The cell that names the row. */
  lead?: boolean;
}

interface DataTableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  current?: string;
  /** A press anywhere in a row. Its lead cell has the button for keyboards. */
  onRow?: (row: T) => void;
  /** Few short columns fit a narrow page as they are. */
  staysTable?: boolean;
}

/** Links and buttons in a row do their own work, and a text that is marked is not pressed. */
function isOfRow({ target }: React.MouseEvent): boolean {
  return !(target as Element).closest("a, button, input, label, select") && (getSelection()?.isCollapsed ?? true);
}

// The roles are written down because a browser forgets them where CSS changes the display of a table.
export function DataTable<T>({ label, columns, rows, rowKey, current, onRow, staysTable }: DataTableProps<T>) {
  return (
    <div className={`table-box ${staysTable ? "" : "stacks"}`}>
      <table className="table" role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th key={column.head} role="columnheader" scope="col" className={column.number ? "number" : ""}>
                {column.head || <span className="hidden-text">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr
              key={rowKey(row)}
              role="row"
              aria-current={rowKey(row) === current || undefined}
              className={onRow && "pressed"}
              onClick={onRow && ((event) => isOfRow(event) && onRow(row))}
            >
              {columns.map((column) => {
                const content = column.cell(row);
                const names = [column.number && "number", column.lead && "lead", content == null && "blank"];
                return (
                  <td key={column.head} role="cell" data-label={column.head} className={names.filter(Boolean).join(" ")}>
                    {content != null && <div>{content}</div>}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
