/** Compiles the schemas of the routes into validators, with ajv through fastify's own package. */
import { AjvCompiler, type BuildCompilerFromPool } from "@fastify/ajv-compiler";

/** A validator as fastify uses it: it is called, and the findings are read from it. */
interface Validator {
  (data: unknown): boolean;
  errors: unknown;
}
type Build = (...how: Parameters<BuildCompilerFromPool>) => (route: object) => Validator;

const build = AjvCompiler() as unknown as Build;

const onDemand: Build = (externalSchemas, options) => {
  const compile = build(externalSchemas, options);
  return (route) => {
    let compiled: Validator | undefined;
    const validate = (data: unknown): boolean => {
      compiled ??= compile(route);
      const isGood = compiled(data);
      validate.errors = compiled.errors;
      return isGood;
    };
    validate.errors = null as unknown;
    return validate;
  };
};

/**
 * Compiles a schema when its route is called for the first time. Compiling all of them at the start took two fifths of
 * its CPU time (170 of 440 ms), and most gateways never call most routes.
 */
export const compileOnDemand = onDemand as unknown as BuildCompilerFromPool;
