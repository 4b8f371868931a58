// Native fields with their label, help and fault.
import { useId, type ReactNode } from "react";

interface FrameProps {
  label: ReactNode;
  help?: ReactNode;
  fault?: ReactNode;
  children: (ids: { id: string; "aria-describedby"?: string; "aria-invalid"?: true }) => ReactNode;
}

export function FieldFrame({ label, help, fault, children }: FrameProps) {
  const id = useId();
  const described = [help && `${id}-help`, fault && `${id}-fault`].filter(Boolean).join(" ");
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        "aria-describedby": described || undefined,
        "aria-invalid": fault ? true : undefined,
      })}
      {help && (
        <div className="help" id={`${id}-help`}>
          {help}
        </div>
      )}
      {fault && (
        <div className="fault" id={`${id}-fault`}>
          {fault}
        </div>
      )}
    </div>
  );
}

interface TextProps {
  label: ReactNode;
  value: string;
  onChange: (value: string) => void;
  help?: ReactNode;
  fault?: ReactNode;
  placeholder?: string;
  type?: "text" | "search" | "password" | "number" | "date";
  list?: string[];
  required?: boolean;
  autoFocus?: boolean;
}

export function TextField({ label, value, onChange, help, fault, list, ...input }: TextProps) {
  return (
    <FieldFrame label={label} help={help} fault={fault}>
      {(ids) => (
        <>
          <input
            {...ids}
            {...input}
            value={value}
            onChange={(event) => onChange(event.target.value)}
            list={list && `${ids.id}-list`}
            autoComplete="off"
            spellCheck={false}
          />
          {list && (
            <datalist id={`${ids.id}-list`}>
              {list.map((entry) => (
                <option key={entry} value={entry} />
              ))}
            </datalist>
          )}
        </>
      )}
    </FieldFrame>
  );
}

interface ChoiceProps {
  label: ReactNode;
  value: string;
  onChange: (value: string) => void;
  options: (string | { value: string; text: string })[];
  /** The text for no choice, if that is allowed. */
  none?: string;
  help?: ReactNode;
  fault?: ReactNode;
}

export function ChoiceField({ label, value, onChange, options, none, help, fault }: ChoiceProps) {
  return (
    <FieldFrame label={label} help={help} fault={fault}>
      {(ids) => (
        <select {...ids} value={value} onChange={(event) => onChange(event.target.value)}>
          {none !== undefined && <option value="">{none}</option>}
          {options.map((option) => {
            const { value: key, text } = typeof option === "string" ? { value: option, text: option } : option;
            return (
              <option key={key} value={key}>
                {text}
              </option>
            );
          })}
        </select>
      )}
    </FieldFrame>
  );
}

export function CheckField({ label, value, onChange }: { label: ReactNode; value: boolean; onChange: (value: boolean) => void }) {
  return (
    <label className="check">
      <input type="checkbox" checked={value} onChange={(event) => onChange(event.target.checked)} />
      <span>{label}</span>
    </label>
  );
}
